"""New York's flights with LightGBM, beside `gossipnode fit --learner boost`, in turn, one thread each.

    go build -o gossipnode ./examples/gossipnode
    pip install lightgbm scikit-learn pandas
    OMP_NUM_THREADS=1 GOMAXPROCS=1 python docs/torch/boost.py ./gossipnode ../shared/data/flights/flights.csv.gz

Both are given the same columns and rows (row:7/10; categories of fewer than 20 rows joined). Seconds are
from rows in memory to what the model says of the held-out rows, with the binning of each; gossipnode's cover preparing and
scoring too. Processor time is that of 100 trees less that of a single one on both sides: so without reading, preparing and binning.
"""

import json
import os
import subprocess
import sys
import time

import lightgbm
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

program, data = sys.argv[1:3]
rows = pd.read_csv(data)
rows["row"] = np.arange(len(rows))
rows = rows[rows.arr_delay.notna()]
late, train = (rows.arr_delay > 15).astype(int).values, (rows.row % 10 < 7).values
columns = rows.drop(columns=["arr_delay", "dep_delay", "tailnum", "row"])
for name in ["carrier", "origin", "dest", "manufacturer", "engine"]:
    count = columns.loc[train, name].value_counts()
    kept = columns[name].isna() | columns[name].isin(count.index[count >= 20])
    columns[name] = columns[name].where(kept, "other").astype("category")


def fit(trees):
    """What gossipnode says of a fit of so many trees, and its processor time."""
    command = [program, "fit", "--data", data, "--target", "arr_delay>15", "--drop", "dep_delay", "--split", "row:7/10"]
    begun = os.times()
    out = subprocess.run(command + ["--learner", "boost", "--trees", str(trees), "--json"], check=True, capture_output=True, text=True).stdout
    ended = os.times()
    return json.loads(out.splitlines()[-1]), sum(ended[2:4]) - sum(begun[2:4])


def theirs(trees):
    """What LightGBM's model of so many trees says of the held-out rows, its seconds, and its processor time."""
    model = lightgbm.LGBMClassifier(n_estimators=trees, num_leaves=31, learning_rate=0.1, n_jobs=1, verbose=-1)
    begun, cpu = time.time(), time.process_time()
    model.fit(columns[train], late[train])
    said = model.predict_proba(columns[~train])[:, 1]
    return said, time.time() - begun, time.process_time() - cpu


ratios, clocks = [], []
for turn in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
    said, seconds, cpu = theirs(100)
    cpu -= theirs(1)[2]
    area = roc_auc_score(late[~train], said)
    ours, processor = fit(100)
    processor -= fit(1)[1]
    ratios.append(processor / cpu)
    clocks.append(ours["seconds"] / seconds)
    print(f"LightGBM AUC {area:.4f} in {seconds:.2f} s (processor {cpu:.2f}), "
          f"gossipnode {ours['auc']['mean']:.4f} in {ours['seconds']:.2f} s (processor {processor:.2f})", flush=True)
print(f"seconds, ratio: median {np.median(clocks):.2f}, {min(clocks):.2f} to {max(clocks):.2f}")
print(f"processor time, ratio: median {np.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")

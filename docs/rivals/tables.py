"""New York's flights with Spark MLlib, beside `gossipnode fit`, in turn: who will be late, by area under the curve.

    /work/venv-rivals/spark/bin/python docs/rivals/tables.py ./gossipnode ../shared/data/flights/flights.parquet [rounds [learners]]

Both are given the same columns and rows (row:7/10, row i trains where i % 10 < 7), in Spark as its MLlib guide does it:
categories by StringIndexer (rare ones and missing ones kept), numbers by Imputer; one-hot and scaled for the logistic regression.
Seconds and processor time are those of preparing, fitting and scoring; Spark's rows are read and cached before, its JVM is
up and has fitted one small model. Two threads: local[2], GOMAXPROCS=2.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import pandas as pd
from pyspark.ml import Pipeline
from pyspark.ml.classification import DecisionTreeClassifier, GBTClassifier, LogisticRegression
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import Imputer, OneHotEncoder, StandardScaler, StringIndexer, VectorAssembler
from pyspark.sql import SparkSession

program, data = sys.argv[1:3]
NAMED = ["carrier", "origin", "dest", "manufacturer", "engine"]
INDEXED, KNOWN = [name + "_index" for name in NAMED], ["label", "trains"]


def rows():
    table = pd.read_parquet(data)
    table["trains"] = [i % 10 < 7 for i in range(len(table))]
    table = table[table.arr_delay.notna()]
    table["label"] = (table.arr_delay > 15).astype(float)
    table = table.drop(columns=["arr_delay", "dep_delay", "tailnum"])
    for name in table.columns:
        if name in NAMED:
            table[name] = table[name].astype(object).where(table[name].notna(), "missing")
        elif name not in KNOWN:
            table[name] = table[name].astype(float)
    return table


def pipeline(learner, numbers):
    """Of Spark's parts, for a learner of trees or a linear one."""
    filled = [name + "_filled" for name in numbers]
    first = [StringIndexer(inputCols=NAMED, outputCols=INDEXED, handleInvalid="keep"), Imputer(inputCols=numbers, outputCols=filled)]
    if learner == "logistic":
        hot = [name + "_hot" for name in NAMED]
        return Pipeline(stages=first + [OneHotEncoder(inputCols=INDEXED, outputCols=hot), VectorAssembler(inputCols=filled + hot, outputCol="raw"),
                                        StandardScaler(inputCol="raw", outputCol="features"), LogisticRegression(maxIter=100)])
    trees = DecisionTreeClassifier(maxDepth=5, maxBins=128) if learner == "tree" else GBTClassifier(maxIter=100, maxDepth=5, maxBins=128)
    return Pipeline(stages=first + [VectorAssembler(inputCols=filled + INDEXED, outputCol="features"), trees])


def processor(pid):
    with open(f"/proc/{pid}/stat") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def theirs(learner, train, test, numbers, java):
    began, spent = time.perf_counter(), processor(java)
    fitted = pipeline(learner, numbers).fit(train)
    area = BinaryClassificationEvaluator(rawPredictionCol="probability").evaluate(fitted.transform(test))
    return area, time.perf_counter() - began, processor(java) - spent


def ours(learner):
    begun = os.times()
    out = subprocess.run([program, "fit", "--data", data, "--target", "arr_delay>15", "--drop", "dep_delay,tailnum", "--split", "row:7/10", "--learner", learner, "--json",
                          *(["--depth", "5"] if learner == "tree" else [])],
                         env={**os.environ, "GOMAXPROCS": "2"}, check=True, capture_output=True, text=True).stdout
    ended, said = os.times(), json.loads(out.splitlines()[-1])
    return said["auc"]["mean"], said["seconds"], sum(ended[2:4]) - sum(begun[2:4])


def main():
    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    table = rows()
    numbers = [name for name in table.columns if name not in NAMED + KNOWN]
    whole = spark.createDataFrame(table).repartition(2).cache()
    train, test = whole.filter("trains").cache(), whole.filter("not trains").cache()
    print(f"{train.count()} rows train, {test.count()} judge; numbers {numbers}; Spark {spark.version}", flush=True)
    theirs("tree", train, test, numbers, java)
    for learner in sys.argv[4].split(",") if len(sys.argv) > 4 else ("logistic", "tree", "boost"):
        turns = []
        for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 3):
            turns.append((theirs(learner, train, test, numbers, java), ours(learner)))
            print(learner, "AUC, seconds, processor: Spark {:.4f} {:.1f} {:.1f}".format(*turns[-1][0]), "gossipnode {:.4f} {:.1f} {:.1f}".format(*turns[-1][1]),
                  f"load {os.getloadavg()[0]:.0f}", flush=True)
        for what, place in (("seconds", 1), ("processor time", 2)):
            ratios = [us[place] / them[place] for them, us in turns]
            print(f"{learner}, {what}, gossipnode's for Spark's: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()

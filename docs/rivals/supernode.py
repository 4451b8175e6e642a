"""One of Flower's SuperNodes, which runs the race's ClientApp in a process of its own in each round."""

import json
import os

import meet

settings = {**meet.settings(), "root": os.getpid()}
os.environ["RIVALS"] = json.dumps(settings)
rank = settings["rank"]
os.execlp("flower-supernode", "flower-supernode", "--insecure", "--superlink", "127.0.0.1:8000", "--host", "127.0.0.1", "--port", str(9100 + rank),
          "--node-config", f"partition-id={rank}")

"""An application on the official Elasticsearch client that knows nothing of versions.

Its workers read a document, change it, and write it back whole, all at once. It reads its orders as JSON from standard input and
prints, as JSON, what it was told and what it found in the end.
"""

import contextlib
import datetime
import json
import sys
import threading

from elasticsearch import Elasticsearch, TransportError
from opentelemetry import trace
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.sdk.trace import TracerProvider


def seed(shape, workers):
    document = {"title": "Zażółć <b>gęślą</b> \N{SPOOL OF THREAD}", "serial": 9007199254740993}
    if shape == "fields":
        document.update({f"w{n}": 0 for n in range(workers)})
    elif shape == "counter":
        document["stock"] = 0
    elif shape == "cart":
        document.update({"stock": 0, "history": [], "updated_at": ""})
    else:
        document["history"] = []
    return document


def change(shape, document, worker, turn):
    if shape == "fields":
        document[f"w{worker}"] += 1
    elif shape == "counter":
        document["stock"] += 1
    else:
        document["history"].append(f"w{worker}-{turn}")
    if shape == "cart":
        document["stock"] += 1
        document["updated_at"] = datetime.datetime.now().isoformat()


def piece_of_work(orders):
    """Has the requests in it carry one trace, if the orders say so."""
    traced = orders["sessions"] == "traced"
    return trace.get_tracer(__name__).start_as_current_span("work") if traced else contextlib.nullcontext()


class Worker(threading.Thread):
    def __init__(self, orders, number, client):
        super().__init__()
        self.orders, self.number, self.client = orders, number, client
        self.headers = {"Optimist-Session": f"python-{number}"} if orders["sessions"] == "named" else None
        self.acknowledged, self.refused, self.errors, self.entries = 0, [], [], []

    def run(self):
        for turn in range(self.orders["rounds"]):
            try:
                with piece_of_work(self.orders):
                    self.turn(turn)
            except TransportError as e:
                # The status is "N/A" where there was no answer.
                (self.refused if isinstance(e.status_code, int) else self.errors).append(str(e))

    def turn(self, turn):
        where = {"index": self.orders["index"], "id": self.orders["id"], "headers": self.headers}
        document = self.client.get(**where)["_source"]
        change(self.orders["shape"], document, self.number, turn)
        self.client.index(body=document, **where)
        self.acknowledged += 1
        self.entries.append(f"w{self.number}-{turn}")


def look(orders, client, over):
    """Reads the document again and again, and does nothing with it."""
    while not over.is_set():
        with piece_of_work(orders):
            client.get(index=orders["index"], id=orders["id"])


def count(shape, document, workers):
    """Returns the changes found, lost and invented."""
    if shape == "fields":
        found = [document[f"w{w.number}"] for w in workers]
        lost = sum(max(w.acknowledged - n, 0) for w, n in zip(workers, found))
        return sum(found), lost, sum(max(n - w.acknowledged, 0) for w, n in zip(workers, found))
    acknowledged = sum(w.acknowledged for w in workers)
    if shape == "counter":
        found = document["stock"]
        return found, max(acknowledged - found, 0), max(found - acknowledged, 0)
    entries = document["history"]
    if shape == "cart" and document["stock"] != len(entries):
        return document["stock"], max(acknowledged - document["stock"], 0), max(document["stock"] - acknowledged, 0)
    sure = {e for w in workers for e in w.entries}
    return len(entries), len(sure - set(entries)), len(entries) - len(sure & set(entries))


def main():
    orders = json.load(sys.stdin)
    direct = Elasticsearch(orders["engine"])
    where = {"index": orders["index"], "id": orders["id"]}
    document = seed(orders["shape"], orders["workers"])
    direct.index(body=document, **where)

    if orders["sessions"] == "traced":
        trace.set_tracer_provider(TracerProvider())
        URLLib3Instrumentor().instrument()
    shared = Elasticsearch(orders["url"], maxsize=max(orders["workers"] // 2, 1)) if orders["sessions"] in ("pooled", "traced") else None
    workers = [Worker(orders, n, shared or Elasticsearch(orders["url"])) for n in range(orders["workers"])]
    over = threading.Event()
    lookers = [threading.Thread(target=look, args=(orders, shared or direct, over)) for _ in range(orders["lookers"])]
    for w in workers + lookers:
        w.start()
    for w in workers:
        w.join()
    over.set()
    for w in lookers:
        w.join()

    stored = direct.get(**where)["_source"]
    found, lost, invented = count(orders["shape"], stored, workers)
    json.dump(
        {
            "acknowledged": sum(w.acknowledged for w in workers),
            "found": found,
            "lost": lost,
            "invented": invented,
            "refused": [e for w in workers for e in w.refused],
            "errors": [e for w in workers for e in w.errors],
            "damaged": [k for k in ("title", "serial") if stored.get(k) != document[k]],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()

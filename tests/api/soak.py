"""Many clients at once, with random disconnects: every answer that arrives equals its solo run.

    python tests/api/soak.py URL PID [--clients 16] [--requests 25] [--seed 1]

Each request is drawn from a fixed set (dialects, sampled and greedy, streamed and whole, with tools and schemas), each
with its own seed; first every one runs alone, then all clients run them in random order. Checked: tokens (or text) equal
the solo run's, no slot is busy at the end, the process's memory is flat within 2 % after warm-up, and a burst over the
queue gets 503 while what was admitted is answered as ever. Exit status 1 and one line per finding otherwise.
"""

import argparse
import collections
import http.client
import json
import random
import socket
import sys
import threading
import time
import urllib.parse

WORDS = "river stone lantern winter paper harbor garden thunder copper meadow signal orchard".split()
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "n": {"type": "integer"}},
          "required": ["name", "n"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Looks a word up", "parameters": {
    "type": "object", "properties": {"word": {"type": "string", "maxLength": 12}}, "required": ["word"]}}}


class Failure(Exception):
    pass


def requests_of(seed, count):
    """(path, body) pairs, all different."""
    draw = random.Random(seed)
    out = []
    for index in range(count):
        text = " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 120)))
        sampled = {"seed": index, "temperature": draw.choice([0, 0.7, 1.3]), "top_k": draw.choice([0, 40])}
        tokens = draw.randint(1, 48)
        kind = draw.randrange(6)
        chat = {"messages": [{"role": "system", "content": "You are terse."}, {"role": "user", "content": text}],
                "max_tokens": tokens, **sampled}
        if kind == 0:
            out.append(("/completion", {"prompt": text, "n_predict": tokens, "return_tokens": True, **sampled}))
        elif kind == 1:
            out.append(("/v1/completions", {"prompt": text, "max_tokens": tokens, "logprobs": 2, **sampled}))
        elif kind == 2:
            out.append(("/v1/chat/completions", {**chat, "response_format": {
                "type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}}))
        elif kind == 3:
            out.append(("/v1/chat/completions", {**chat, "tools": [TOOL], "tool_choice": draw.choice(["auto", "required"])}))
        elif kind == 4:
            out.append(("/v1/messages", {"messages": chat["messages"][1:], "system": "You are terse.",
                                         "max_tokens": tokens, **sampled}))
        else:
            out.append(("/v1/responses", {"input": text, "max_output_tokens": tokens, "store": False, **sampled}))
    return out


def essence(path, body):
    """What must not depend on company: tokens where the route tells them, else all that was said."""
    if path == "/completion":
        return body["tokens"], body["content"]
    if path == "/v1/completions":
        choice = body["choices"][0]
        return choice["text"], choice["logprobs"]
    if path == "/v1/chat/completions":
        message = body["choices"][0]["message"]
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]
        return message["content"], calls, body["usage"]["completion_tokens"]
    if path == "/v1/messages":
        return [{key: block[key] for key in block if key != "id"} for block in body["content"]]
    return [[part["text"] for part in item["content"]] if "content" in item else item["arguments"] for item in body["output"]]


class Client:
    def __init__(self, url):
        self.address = urllib.parse.urlsplit(url)

    def connect(self):
        return http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=300)

    def send(self, path, body):
        """(status, parsed body) of a whole answer."""
        connection = self.connect()
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def get(self, path):
        connection = self.connect()
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def leave_early(self, path, body, draw):
        """Sends a request and goes away: at once, or after the first bytes."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": draw.random() < 0.7}),
                           {"Content-Type": "application/json"})
        if draw.random() < 0.5:
            connection.sock.settimeout(0.05 + draw.random() * 0.3)
            try:
                connection.sock.recv(64)
            except (socket.timeout, OSError):
                pass
        connection.sock.close()


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise Failure(f"process {pid} is gone")


def busy_slots(client):
    return sum(slot["is_processing"] for slot in client.get("/slots"))


def wait_until_idle(client, seconds=20):
    end = time.monotonic() + seconds
    while busy_slots(client) > 0:
        if time.monotonic() > end:
            raise Failure(f"{busy_slots(client)} slots are still busy {seconds} s after the last request")
        time.sleep(0.02)


def run_clients(client, jobs, solo, clients, per_client, seed):
    """Every client sends per_client requests in its own order. Returns what differed."""
    findings = []
    counts = collections.Counter()

    def work(number):
        draw = random.Random(seed * 1000 + number)
        for _ in range(per_client):
            index = draw.randrange(len(jobs))
            path, body = jobs[index]
            if draw.random() < 0.15:
                client.leave_early(path, body, draw)
                counts["left"] += 1
                continue
            while True:
                status, answer = client.send(path, body)
                if status != 503:
                    break
                counts["busy"] += 1
                time.sleep(0.05)
            counts["answered"] += 1
            if status != 200:
                findings.append(f"{path} #{index}: status {status}: {answer}")
            elif essence(path, answer) != solo[index]:
                findings.append(f"{path} #{index}: {essence(path, answer)} differs from its solo run {solo[index]}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return findings, counts


def burst(client, count):
    """More requests at once than run and wait: each is answered 200 or 503."""
    statuses = collections.Counter()

    def work(number):
        status, _ = client.send("/completion", {"prompt": f"burst {number} " * 20, "n_predict": 16, "temperature": 0})
        statuses[status] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def soak(url, pid, clients=16, per_client=25, seed=1, kinds=48, report=print):
    client = Client(url)
    jobs = requests_of(seed, kinds)
    solo = []
    for path, body in jobs:
        status, answer = client.send(path, body)
        if status != 200:
            raise Failure(f"{path}: status {status} alone: {answer}")
        solo.append(essence(path, answer))
    # Warm-up: what the first full load takes stays taken (K/V pages, the prefix cache, allocator pools).
    burst(client, 128)
    findings, _ = run_clients(client, jobs, solo, clients, per_client, seed + 1)
    wait_until_idle(client)
    before = resident_bytes(pid)
    started = time.monotonic()
    more, counts = run_clients(client, jobs, solo, clients, per_client, seed + 2)
    findings += more
    wait_until_idle(client)
    after = resident_bytes(pid)
    growth = after / before - 1
    report(f"{counts['answered']} answered, {counts['left']} left early, {counts['busy']} told to wait, "
           f"{time.monotonic() - started:.1f} s; memory {before / 2**20:.1f} -> {after / 2**20:.1f} MiB ({growth:+.2%})")
    if growth > 0.02:
        findings.append(f"memory grew by {growth:.2%}")
    statuses = burst(client, 128)
    report(f"burst of 128: {dict(statuses)}")
    if set(statuses) - {200, 503} or statuses[503] == 0 or statuses[200] == 0:
        findings.append(f"a burst must be answered 200 and 503 alone, both: {dict(statuses)}")
    wait_until_idle(client)
    status, answer = client.send(*jobs[0])
    if status != 200 or essence(jobs[0][0], answer) != solo[0]:
        findings.append("after the burst the first request differs from its solo run")
    return findings


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("pid", type=int)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    findings = soak(arguments.url, arguments.pid, arguments.clients, arguments.requests, arguments.seed)
    for finding in findings[:20]:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

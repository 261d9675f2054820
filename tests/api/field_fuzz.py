"""Every field of every route with wrong types and extreme values; broken bodies, paths, methods and headers.

    python tests/api/field_fuzz.py URL SECONDS [--seed N] [--case N] [--workers 3] [--limit 10]

The server must have the tiny model (make_tiny_model.py). Each case is drawn from the seed and its number alone; --case
sends one again. Checked: the status is 2xx or 4xx (501 where a route is documented so; 503 with Retry-After for a full
queue), the body is JSON, an error has its route's envelope and names the field that was changed, no answer takes longer
than --limit seconds, /health answers in between, and in the end no slot is busy. Exit status 1 and one line per finding
otherwise.
"""

import argparse
import collections
import copy
import json
import random
import re
import socket
import sys
import threading
import time
import urllib.parse

import field_mutations as mutations
import field_tables as tables

MAX_NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
# What may make a changed field be blamed on the prompt as a whole.
WHOLE_PROMPT = ("prompt is too long", "at least one message with text")


class Finding(Exception):
    pass


class Case:
    """One request: what is sent, and what may come back."""

    def __init__(self, method, path, body=None, headers=None):
        self.method, self.path, self.body, self.headers = method, path, body, headers or {}
        self.envelope = "openai"
        self.changed = []         # paths of changed fields
        self.is_json = True       # the body is one, so fields can be named
        self.statuses = None      # exact ones, for requests that are valid
        self.leaves = None        # seconds until the client goes
        self.raw = None           # bytes of the whole request

    def describe(self):
        fields = ", ".join(field_name(path) for path in self.changed)
        shown = repr(self.raw if self.raw is not None else self.body)[:300]
        return f"{self.method} {self.path[:100]} [{fields}] {self.headers or ''} {shown}"


def field_name(path):
    out = ""
    for key in path:
        out += f"[{key}]" if isinstance(key, int) else f".{key}" if out else key
    return out[:200]


def valid_body(draw, route):
    body = copy.deepcopy(route.base)
    body.update(copy.deepcopy(draw.choice(route.variants)))
    if "response_format" in body or "json_schema" in body or "grammar" in body or "guided_regex" in body:
        body.pop("tool_choice", None)
    if isinstance(body.get("tool_choice"), dict) and "text" in body:
        body["text"] = {"verbosity": "low"}
    if "conversation" in body:  # one of its own: a shared one would grow from case to case
        name = f"conv_{draw.getrandbits(40)}"
        body["conversation"] = {"id": name} if isinstance(body["conversation"], dict) else name
    if route.shared:
        for name in draw.sample(sorted(tables.SAMPLING), draw.choice([0, 3, len(tables.SAMPLING)])):
            body[name] = copy.deepcopy(tables.SAMPLING[name])
        if draw.random() < 0.3 and "stream" in body:
            body["stream"] = True
    return body


def field_case(draw, route):
    body = valid_body(draw, route)
    case = Case("POST", route.path)
    case.envelope = route.envelope
    everything = list(mutations.paths_of(body))
    # Half of the time a field at the top, so that deep bodies do not hide them.
    top = [path for path in everything if len(path) == 1]
    for _ in range(draw.choice([1, 1, 1, 1, 2, 3, 5])):
        path = draw.choice(top if draw.random() < 0.5 else everything)
        try:
            case.is_json &= mutations.mutate(draw, body, path)
            case.changed.append(path)
        except (KeyError, IndexError, TypeError):
            pass  # an earlier change took the place away
    if any(not within(body, name) for name in MAX_NAMES if name in route.base):
        case.leaves = 0.2
    case.body = mutations.dump(body)
    return case


def within(body, name):
    value = body.get(name)
    return not isinstance(value, (int, float)) and value is not None and not isinstance(value, mutations.Raw) or \
        isinstance(value, (int, float)) and 0 <= value <= 4


def broken_case(draw, route):
    case = Case("POST", route.path)
    case.body, case.headers = mutations.break_body(draw, valid_body(draw, route))
    case.envelope, case.is_json = route.envelope, False
    return case


def query_case(draw):
    path = draw.choice(tables.QUERIES)
    count = path.count("{}")
    words = [draw.choice(mutations.TEXTS + [str(number) for number in mutations.NUMBERS])[:3000] for _ in range(count)]
    as_bytes = [draw.choice([word.encode(), b"\xff\xfe" * 40, b"\xf0\x9f\x98" * 70]) for word in words]
    path = path.format(*[urllib.parse.quote(word, safe="") for word in as_bytes])
    case = Case(draw.choice(["GET", "GET", "GET", "HEAD", "DELETE", "POST"]), path)
    if case.method == "POST":
        case.body = draw.choice([b"", b"{}", b"[]", b"[{\"id\":0,\"scale\":1}]"])
    case.envelope, case.is_json = None, False
    return case


def transport_case(draw, route):
    """A request written by hand."""
    case = Case("?", "?")
    body = json.dumps(valid_body(draw, route)).encode()
    header = b"Host: localhost\r\nContent-Type: application/json\r\n"
    size = b"Content-Length: %d\r\n" % len(body)
    line = b"POST " + route.path.encode() + b" HTTP/1.1\r\n"
    case.raw = draw.choice([
        b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50,
        b"\0" * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        line + header + b"Content-Length: -1\r\n\r\n" + body, line + header + b"Content-Length: 99999999999999999999\r\n\r\n",
        line + header + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body,
        line + header + size + b"Transfer-Encoding: chunked\r\n\r\n" + body,
        line + header + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + body,
        line + header + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
        line + header + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", line + header + b"Transfer-Encoding: gzip\r\n\r\n",
        line + header + size + b"Expect: 100-continue\r\n\r\n" + body, line + header + size + b"Expect: x\r\n\r\n" + body,
        line + header + size + b"X-Conversation-Id: " + b"a" * 20_000 + b"\r\n\r\n" + body,
        line + header + size + b"X-Conversation-Id: \xff\xfe\r\nX-Priority: \xe9\xe9\r\n\r\n" + body,
        line + header + size + b"X-Priority: 99999999999\r\n\r\n" + body,
        line + header + size + b"Content-Encoding: identity\r\nOrigin: null\r\n\r\n" + body,
        line + header + size + b"Authorization: Bearer \xff\r\n\r\n" + body, line + header.replace(b"\r\n", b"\n") + size + b"\r\n" + body,
        line + header + size + b" folded: x\r\n\r\n" + body, line + header + size + b"A b: x\r\n\r\n" + body,
        line + header + size + b"\r\n" + body[:-5], (line + header + size + b"\r\n" + body) * 5,
    ])
    case.envelope, case.is_json = None, False
    return case


def control_case(draw, route):
    case = Case("POST", route.path, json.dumps(valid_body(draw, route)).encode())
    case.envelope, case.statuses = route.envelope, (route.valid,)
    return case


def make_case(seed, number):
    draw = random.Random(f"{seed}/{number}")
    route = draw.choice(tables.ROUTES)
    kind = draw.random()
    if kind < 0.75:
        case = field_case(draw, route)
    elif kind < 0.84:
        case = broken_case(draw, route)
    elif kind < 0.91:
        case = query_case(draw)
    elif kind < 0.96:
        case = transport_case(draw, route)
    else:
        case = control_case(draw, route)
    if draw.random() < 0.05:
        case.leaves = draw.choice([0, 0.001, 0.01, 0.05, 0.2])
    if draw.random() < 0.03 and case.raw is None:
        case.headers["X-Conversation-Id"] = draw.choice(["a", "b" * 200, "c d"])
    return case


class Answer:
    def __init__(self, status, headers, body, complete):
        self.status, self.headers, self.body, self.complete = status, headers, body, complete


def parse_answer(data, head=False):
    """The first whole answer in `data`, or None. `head`: it has no body."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = data[:end].split(b"\r\n")
    found = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [ -~]*", lines[0])
    if not found:
        raise Finding(f"no status line: {lines[0][:80]!r}")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(b": ")
        if not re.fullmatch(rb"[A-Za-z0-9-]+", name) or any(byte < 32 for byte in value):
            raise Finding(f"no header line: {line[:80]!r}")
        headers[name.lower().decode()] = value.decode("latin-1")
    status, rest = int(found[1]), data[end + 4:]
    if status == 100:
        return parse_answer(rest, head)
    if head or status == 204:
        return Answer(status, headers, b"", True)
    if "content-length" in headers:
        size = int(headers["content-length"])
        return Answer(status, headers, rest[:size], len(rest) >= size)
    body = b""
    while True:
        size, mark, rest = rest.partition(b"\r\n")
        if not mark:
            return Answer(status, headers, body, False)
        length = int(size, 16)
        if length == 0:
            return Answer(status, headers, body, True)
        body, rest = body + rest[:length], rest[length + 2:]


class Client:
    def __init__(self, url, limit):
        place = urllib.parse.urlsplit(url)
        self.address, self.limit = (place.hostname, place.port), limit

    def request_bytes(self, case):
        if case.raw is not None:
            return case.raw
        lines = [f"{case.method} {case.path} HTTP/1.1", f"Host: {self.address[0]}:{self.address[1]}", "Connection: close"]
        if case.body is not None:
            lines += [f"Content-Length: {len(case.body)}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in case.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (case.body or b"")

    def send(self, case):
        """The answer; None where the client leaves before it, or where the server rightly closes without one."""
        end = time.monotonic() + (self.limit if case.leaves is None else case.leaves)
        with socket.create_connection(self.address, timeout=self.limit) as connection:
            try:
                connection.sendall(self.request_bytes(case))
                if case.raw is not None:
                    connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all was sent; the answer may still come
            data = b""
            while True:
                connection.settimeout(max(0.001, end - time.monotonic()))
                try:
                    piece = connection.recv(1 << 20)
                except (ConnectionResetError, BrokenPipeError):
                    piece = b""
                except TimeoutError:
                    if case.leaves is not None:
                        return None
                    raise Finding(f"no whole answer within {self.limit} s; so far {data[:200]!r}") from None
                data += piece
                answer = parse_answer(data, case.method == "HEAD")
                if answer and answer.complete:
                    return answer
                if not piece:
                    if case.raw is not None or case.leaves is not None or (answer and answer.headers.get("transfer-encoding")):
                        return answer if answer and answer.complete else None
                    raise Finding(f"the connection ended in the answer: {data[:200]!r}")


def check_error(case, answer, body):
    """The envelope, and the field's name."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str) or not error["message"]:
        raise Finding(f"{answer.status}: no error envelope: {answer.body[:200]!r}")
    # What is refused before the route is known has OpenAI's envelope.
    transport = answer.status in (413, 415) or error["message"].startswith("request body: Content-Encoding")
    if case.envelope == "anthropic" and body.get("type") != "error" and not transport:
        raise Finding(f"{answer.status}: not Anthropic's envelope: {answer.body[:200]!r}")
    if case.envelope in ("openai", "responses") and not {"type", "code", "param"} <= error.keys():
        raise Finding(f"{answer.status}: not OpenAI's envelope: {answer.body[:200]!r}")
    if len(error["message"]) > 4000:
        raise Finding(f"{answer.status}: a message of {len(error['message'])} characters: {error['message'][:100]}")
    if len(case.changed) == 1 and case.is_json and answer.status != 501 and not names(case.changed[0], error):
        raise Finding(f"{answer.status}: '{field_name(case.changed[0])}' was changed, the error names another: "
                      f"{error['message'][:200]} (param {str(error.get('param'))[:80]})")


def names(path, error):
    message = error["message"]
    if any(text in message for text in WHOLE_PROMPT):
        return True
    if message.startswith("request body: invalid JSON"):
        return True
    if path[0] == "extra_body":
        path = path[1:] or path  # its members count as the request's own
    top = str(path[0])
    if len(path) == 1:
        return top in message or top in str(error.get("param"))
    # Of the long lists the entry is named too.
    entry = f"{top}[{path[1]}]" if top in ("messages", "input", "system") else top
    return entry in message or entry in str(error.get("param")) or "tool_choice" in message


def check_stream(case, answer):
    body = answer.body
    if re.search(r"[?&]from=(?!0*(&|$))", case.path):  # a byte count: the stream may go on within a line
        body = body.partition(b"\n")[2]
    text = body.decode("utf-8")
    for block in text.split("\n\n"):
        for line in block.split("\n"):
            if line == "data: [DONE]":
                continue
            if line.startswith("data: "):
                data = json.loads(line[6:])
                error = data.get("error") if isinstance(data, dict) else None
                if error and error.get("param") != "logit_bias":  # known only when a token is to be drawn
                    raise Finding(f"the stream ended with an error: {line[:300]}")
            elif line and not line.startswith((":", "event: ")):
                raise Finding(f"no line of a stream: {line[:100]!r}")


def check(case, answer):
    if answer is None:
        return
    status = answer.status
    documented = status == 501 and (case.raw is not None or case.path.split("?")[0].startswith(tables.NOT_IMPLEMENTED))
    busy = status == 503 and "retry-after" in answer.headers
    version = status == 505 and case.raw is not None
    if not (200 <= status < 300 or 400 <= status < 499 or documented or busy or version):
        raise Finding(f"status {status}: {answer.body[:300]!r}")
    if case.statuses and status not in case.statuses and not busy:
        raise Finding(f"a valid request has status {status}: {answer.body[:300]!r}")
    if case.method == "HEAD" or status == 204:
        return
    kind = answer.headers.get("content-type", "")
    try:
        if kind.startswith("text/event-stream"):
            check_stream(case, answer)
        elif kind.startswith("application/json"):
            body = json.loads(answer.body.decode("utf-8"), parse_constant=lambda text: 1 / 0)
            if status >= 400:
                check_error(case, answer, body)
        elif status >= 400 or not kind.startswith("text/plain"):
            raise Finding(f"status {status} with content type {kind!r}")
    except (ValueError, ZeroDivisionError) as error:
        raise Finding(f"status {status}: no JSON in UTF-8 ({error}): {answer.body[:200]!r}") from None


class Run:
    def __init__(self, options):
        self.client = Client(options.url, options.limit)
        self.options = options
        self.lock = threading.Lock()
        self.next, self.findings = 0, []
        self.statuses = collections.Counter()
        self.slowest = (0, "")
        self.end = time.monotonic() + options.seconds

    def one(self, number):
        case = make_case(self.options.seed, number)
        began = time.monotonic()
        answer = None
        try:
            answer = self.client.send(case)
            check(case, answer)
        except ConnectionRefusedError:
            self.report(number, case, "the server is gone")
            self.end = 0
        except Finding as finding:
            self.report(number, case, finding)
        with self.lock:
            self.statuses[answer.status if answer else "left"] += 1
            self.slowest = max(self.slowest, (time.monotonic() - began, f"case {number}: {case.describe()[:160]}"))
        return answer

    def report(self, number, case, what):
        with self.lock:
            self.findings.append(f"{what}\n    python tests/api/field_fuzz.py {self.options.url} 0 --seed {self.options.seed} "
                                 f"--case {number}   # {case.describe()}")
            print(self.findings[-1], flush=True)

    def health(self):
        case = Case("GET", "/health")
        case.statuses = (200,)
        try:
            check(case, self.client.send(case))
        except (OSError, Finding) as finding:
            self.report(-1, case, f"/health: {finding}")

    def work(self):
        while time.monotonic() < self.end and len(self.findings) < self.options.most:
            with self.lock:
                number, self.next = self.next, self.next + 1
            self.one(number)
            if number % 20 == 0:
                self.health()

    def idle(self):
        """No slot is busy, some time after the last request."""
        for _ in range(100):
            answer = self.client.send(Case("GET", "/slots"))
            if answer.status == 200 and not any(slot["is_processing"] for slot in json.loads(answer.body)):
                return
            time.sleep(0.1)
        self.report(-1, Case("GET", "/slots"), f"a slot is busy 10 s after the last request: {answer.body[:300]!r}")

    def run(self):
        workers = [threading.Thread(target=self.work) for _ in range(self.options.workers)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if self.end:
            self.health()
            self.idle()


def fuzz(url, seconds, seed=1, case=None, workers=3, limit=10.0, most=20, report=print):
    """The findings, as lines."""
    run = Run(argparse.Namespace(url=url, seconds=seconds, seed=seed, workers=workers, limit=limit, most=most))
    if case is not None:
        answer = run.one(case)
        report(f"{make_case(seed, case).describe()}\n{answer and (answer.status, answer.body[:2000])}")
    else:
        run.run()
        report(f"{run.next} cases, seed {seed}, statuses {dict(run.statuses)}, {len(run.findings)} findings; "
               f"slowest {run.slowest[0]:.1f} s, {run.slowest[1]}")
    return run.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--most", type=int, default=20, help="findings after which it ends")
    return 1 if fuzz(**vars(parser.parse_args())) else 0


if __name__ == "__main__":
    sys.exit(main())

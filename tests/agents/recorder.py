"""A reverse proxy on loopback that notes sizes, times and usage of what passes, never the texts."""

import http.client
import http.server
import json
import threading
import time
import urllib.parse

BILLING = b"x-anthropic-billing-header: "


class Exchange:
    """One request and its answer. `report` is the answer's x_vedette, None where there is none."""

    def __init__(self, method, path, size):
        self.method, self.path, self.size = method, path, size
        self.tools = []
        self.status = 0
        self.report = None
        self.error = ""
        self.began = time.monotonic()
        self.seconds = 0.0

    @property
    def cached_share(self):
        return self.report["cached_tokens"] / self.report["prompt_tokens"]

    def __repr__(self):
        if self.report is None:
            return f"{self.method} {self.path}: {self.status} {self.error}"
        cache = self.report["cache"]
        where = f", parted at {cache['position']}" if cache.get("position") is not None else ""
        return (f"{self.method} {self.path}: {self.size} bytes, {len(self.tools)} tools, "
                f"{self.report['prompt_tokens']} tokens, {100 * self.cached_share:.1f} % cached{where}, "
                f"{self.report['completion_tokens']} answered, {self.seconds:.2f} s")


def tool_names(body):
    for tool in body.get("tools") or []:
        if tool.get("type") == "namespace":
            yield from (inner.get("name") for inner in tool.get("tools", []))
        else:
            yield tool.get("name") or (tool.get("function") or {}).get("name")


def report_in(data):
    """The x_vedette of an answer or of one event."""
    if not isinstance(data, dict):
        return None
    if "x_vedette" in data:
        return data["x_vedette"]
    return report_in(data.get("response"))


class Recorder:
    """Stands before `target`. With `change_billing` the billing header in each request's system text is another."""

    def __init__(self, target, change_billing=False):
        self.exchanges = []
        self.billed = 0  # requests that had a billing header
        self.lock = threading.Lock()
        recorder, host = self, urllib.parse.urlsplit(target).netloc

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (ConnectionError, TimeoutError):
                    self.close_connection = True

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                exchange = Exchange(self.command, self.path, len(body))
                with recorder.lock:
                    recorder.exchanges.append(exchange)
                    number = len(recorder.exchanges)
                    recorder.billed += BILLING in body
                if change_billing:
                    body = body.replace(BILLING, BILLING + b"cch=%05x; " % (number * 7919))
                if self.command == "POST" and self.headers.get("Content-Encoding") is None:
                    exchange.tools = list(tool_names(json.loads(body)))
                headers = {name: value for name, value in self.headers.items()
                           if name.lower() not in ("host", "content-length", "connection", "accept-encoding")}
                upstream = http.client.HTTPConnection(host, timeout=300)
                upstream.request(self.command, self.path, body, headers)
                self.relay(upstream.getresponse(), exchange)
                upstream.close()

            def relay(self, answer, exchange):
                exchange.status = answer.status
                streamed = answer.getheader("Content-Type", "").startswith("text/event-stream")
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "keep-alive"):
                        self.send_header(name, value)
                if not streamed:
                    body = answer.read()
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    self.note(body, exchange)
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                waiting = b""
                while piece := answer.read1(65536):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                    *lines, waiting = (waiting + piece).split(b"\n")
                    for line in lines:
                        if line.startswith(b"data: {"):
                            self.note(line[6:], exchange)
                self.wfile.write(b"0\r\n\r\n")

            def note(self, body, exchange):
                exchange.seconds = time.monotonic() - exchange.began
                try:
                    data = json.loads(body)
                except ValueError:
                    return
                exchange.report = report_in(data) or exchange.report
                if exchange.status != 200:
                    exchange.error = str(data.get("error"))[:300]

            do_GET = do_POST = do_HEAD = serve

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def turns(self, tool):
        """The exchanges of the conversation whose requests carry `tool`, in order."""
        return [exchange for exchange in self.exchanges if tool in exchange.tools and exchange.report]

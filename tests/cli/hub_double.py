"""A stand-in for the Hugging Face hub on loopback, with faults to order.

Files lie behind a second server (another origin), as the hub's large files do; `hub.requests` keeps what was asked.
"""

import hashlib
import http.server
import json
import threading
import urllib.parse


class Request:
    def __init__(self, handler, role):
        self.role, self.path = role, handler.path
        self.range = handler.headers.get("Range")
        self.token = handler.headers.get("Authorization")


def git_blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class HubDouble:
    """Serves `files` (name -> bytes) of one repository at one commit."""

    commit = "0123456789abcdef0123456789abcdef01234567"

    def __init__(self, files, repo="o/tiny", revision="main"):
        self.files, self.repo, self.revision = dict(files), repo, revision
        self.large = {name for name in self.files if name.endswith((".safetensors", ".gguf"))}
        self.requests = []
        self.lock = threading.Lock()
        self.token = None             # that every request to the hub itself must bring
        self.gated = False            # files need terms to be accepted
        self.listing_failures = 0     # answers 503 so many times
        self.failures = {}            # file -> how many answers 503
        self.cuts = {}                # file -> bytes after which the connection breaks, each used once
        self.wrong = {}               # file -> content sent in its place
        self.ignore_ranges = False
        self.retry_after = None
        self.extra_siblings = []
        self.stalls = {}              # file -> (bytes, event): after so many bytes the answer waits for the event
        self.slow = None              # an event that file answers wait for
        self.servers = [self._start("hub"), self._start("files")]
        self.endpoint, self.file_endpoint = (f"http://127.0.0.1:{server.server_port}" for server in self.servers)

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def asked(self, name, role="files"):
        return [request for request in self.requests if request.role == role and request.path.endswith("/" + name)]

    def _start(self, role):
        double = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_GET(self):
                with double.lock:
                    double.requests.append(Request(self, role))
                double._answer(self, role)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    def listing(self):
        siblings = []
        for name, content in self.files.items():
            entry = {"rfilename": name, "size": len(content), "blobId": git_blob(content)}
            if name in self.large:
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            siblings.append(entry)
        return {"id": self.repo, "sha": self.commit, "siblings": siblings + self.extra_siblings}

    def _send(self, handler, status, body=b"", headers=()):
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _answer(self, handler, role):
        path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path)
        if role == "files":
            return self._file(handler, path.removeprefix("/"))
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            return self._send(handler, 401, b"{}", [("X-Error-Code", "RepoNotFound")])
        if path.startswith("/api/models/"):
            return self._list(handler, path.removeprefix("/api/models/"))
        for revision in (self.revision, self.commit):
            prefix = f"/{self.repo}/resolve/{revision}/"
            if path.startswith(prefix):
                return self._resolve(handler, path.removeprefix(prefix))
        return self._send(handler, 404, b"{}", [("X-Error-Code", "RepoNotFound")])

    def _list(self, handler, path):
        if self.listing_failures > 0:
            self.listing_failures -= 1
            return self._send(handler, 503, b"busy", [("Retry-After", self.retry_after)] if self.retry_after else ())
        repo, _, revision = path.partition("/revision/")
        if repo != self.repo:
            return self._send(handler, 404, b"{}", [("X-Error-Code", "RepoNotFound")])
        if revision not in (self.revision, self.commit):
            return self._send(handler, 404, b"{}", [("X-Error-Code", "RevisionNotFound")])
        return self._send(handler, 200, json.dumps(self.listing()).encode(), [("Content-Type", "application/json")])

    def _resolve(self, handler, name):
        if self.gated:
            return self._send(handler, 403, b"{}", [("X-Error-Code", "GatedRepo")])
        if name not in self.files:
            return self._send(handler, 404, b"{}", [("X-Error-Code", "EntryNotFound")])
        if name in self.large:
            return self._send(handler, 302, b"", [("Location", f"{self.file_endpoint}/{name}")])
        return self._file(handler, name)

    def _file(self, handler, name):
        if self.failures.get(name, 0) > 0:
            self.failures[name] -= 1
            return self._send(handler, 503, b"busy")
        if self.slow is not None:
            self.slow.wait(30)
        content = self.wrong.get(name, self.files[name])
        asked = handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").split("-")[0]) if asked and not self.ignore_ranges else 0
        if start >= len(content) > 0:
            return self._send(handler, 416, b"")
        body = content[start:]
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        cut = self.cuts.pop(name, None)
        if name in self.stalls:
            sent, event = self.stalls[name]
            handler.wfile.write(body[:sent])
            handler.wfile.flush()
            event.wait(60)
            body = body[sent:]
        handler.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            handler.wfile.flush()
            handler.close_connection = True
        return None

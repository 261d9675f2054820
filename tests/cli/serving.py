"""A running `vedette serve` for the tests of what talks to it."""

import contextlib
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

from conftest import BINARY


class Serving:
    def __init__(self, process, url):
        self.process, self.url = process, url

    def get(self, path, headers=None, data=None):
        """(status, JSON) of one request."""
        request = urllib.request.Request(self.url + path, headers=headers or {},
                                         data=None if data is None else json.dumps(data).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@contextlib.contextmanager
def serve(home, *arguments, ready=True, hub="http://127.0.0.1:1"):
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "HF_ENDPOINT": hub}
    process = subprocess.Popen([BINARY, "serve", "--port", "0", *arguments], stderr=subprocess.PIPE, text=True,
                               env=environment, cwd=home)
    try:
        lines = []
        url = None
        for line in process.stderr:
            lines.append(line)
            if match := re.search(r"listening on (http\S+)", line):
                url = match[1]
            if url and (not ready or "is ready" in line):
                break
        assert url and process.poll() is None, lines
        yield Serving(process, url)
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stderr.close()

"""Sixteen clients on a tiny model; ./soak does the same on SmolLM2, longer."""

import soak


def test_many_clients(start_server, tiny_path):
    server = start_server(tiny_path, ctx_size=2048, parallel=8)
    lines = []
    findings = soak.soak(server.url, server.process.pid, clients=16, per_client=25, report=lines.append)
    assert findings == [], lines

"""Wrong types and extreme values in every field, for VEDETTE_FIELD_FUZZ_SECONDS (10 if not set)."""

import os

import field_fuzz


def test_every_field(start_server, tiny_path):
    server = start_server(tiny_path, ctx_size=1024, id="tiny")
    lines = []
    findings = field_fuzz.fuzz(server.url, float(os.environ.get("VEDETTE_FIELD_FUZZ_SECONDS", "10")),
                               seed=int(os.environ.get("VEDETTE_FIELD_FUZZ_SEED", "1")), report=lines.append)
    print("\n".join(lines))
    assert findings == [], lines

#!/usr/bin/env python3
"""Validates what a random model wrote under grammars made from schemas, with an independent validator.

    python validate_instances.py FILE

Each line of FILE is {"where", "draft", "schema", "text"}. Numbers are read as decimals, so that multiples are exact.
"""

import json
import re
import sys
from decimal import Decimal, InvalidOperation

import jsonschema

VALIDATORS = {
    "draft3": jsonschema.Draft3Validator,
    "draft4": jsonschema.Draft4Validator,
    "draft6": jsonschema.Draft6Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}


def number(text):
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent past all limits
        return float(text)


def main(path):
    accepted, unjudged, wrong = 0, [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line, parse_float=number)
            validator = VALIDATORS[entry["draft"]]
            checker = validator(entry["schema"], format_checker=validator.FORMAT_CHECKER)
            try:
                instance = json.loads(entry["text"], parse_float=number)
                errors = [error.message for error in checker.iter_errors(instance)]
            except re.error as error:  # a pattern that Python's engine does not know
                unjudged.append(f"{entry['where']}: {error}")
                continue
            except ValueError as error:
                errors = [f"no JSON: {error}"]
            if errors:
                wrong.append(f"{entry['where']}\n  schema {entry['schema']}\n  {entry['text']!r}\n  {errors}")
            else:
                accepted += 1
    for text in wrong + unjudged:
        print(text)
    print(f"{accepted} instances accepted, {len(wrong)} rejected, {len(unjudged)} with patterns unknown here")
    return 1 if wrong or accepted < 250 or len(unjudged) * 50 > accepted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

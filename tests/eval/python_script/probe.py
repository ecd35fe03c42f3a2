"""Stands for helper.py in test_python.c: {"run": EXPRESSION} is answered with {"value": ITS REPR}."""
import json
import os
import subprocess
import sys

GIVEN = os.path.dirname(os.path.abspath(__file__))
names = {"os": os, "sys": sys, "subprocess": subprocess, "GIVEN": GIVEN}
for line in iter(sys.stdin.readline, ""):
    try:
        made = {"value": repr(eval(json.loads(line)["run"], names))}
    except Exception as failed:
        made = {"value": type(failed).__name__}
    print(json.dumps(made), flush=True)

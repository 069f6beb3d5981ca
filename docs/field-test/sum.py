#!/usr/bin/env python3
"""Prints one line for each result of run.sh: sum.py OUTDIR [NAME...]

code      exit code: 0 clean, 1 findings, 2 no verdict
time      duration of the check
build     the part of it in which the operator was built
first     the first fault that was judged, counted from the start of the check; up to 10 s
          late, because the progress is printed each 10 s
faults    faults that were run, without confirmations / faults that were planned
a minute  faults / the time in which they were injected
unsure    inconclusive faults / faults
learnt    scenarios that were learnt / all scenarios
"""

import collections
import json
import pathlib
import re
import sys

COLUMNS = "%-33s %4s %6s %6s %6s %8s %8s %6s %7s  %s"


def clock(seconds):
    return "-" if seconds is None else "%d:%02d" % divmod(seconds, 60)


def moment(log, pattern):
    """Returns the second of the first line that begins with the pattern."""
    found = re.search(rf"^ *(\d+) (?:{pattern})", log, re.MULTILINE)
    return int(found[1]) if found else None


def counted(findings):
    return ", ".join(f"{n} {verdict}" for verdict, n in collections.Counter(f["verdict"] for f in findings).most_common())


def result(report):
    """Returns what the check found, in words."""
    text = counted(report["findings"] or []) or "clean"
    suspicions = [n["suspicion"] for n in report.get("inconclusive", []) if n.get("suspicion")]
    for title, findings in (("unconfirmed", suspicions), ("remarks", report.get("remarks", []))):
        if findings:
            text += f"; {title}: {counted(findings)}"
    for title in ("idle", "stopped"):
        if report.get(title):
            text += f"; {title}: {report[title]}"
    return text


def row(out, name):
    log = (out / f"{name}.log").read_text(errors="replace")
    code, seconds = map(int, (out / f"{name}.done").read_text().split())
    built = moment(log, "starting |learning ") if moment(log, "building ") is not None else 0
    first = moment(log, r"injecting faults: [1-9]\d*(?:/| run)")
    if not (out / f"{name}.json").exists():
        last = re.sub(r"^ *\d+ ", "", log.rstrip().rsplit("\n", 1)[-1])
        return name, code, clock(seconds), clock(built), clock(first), "-", "-", "-", "-", "no report: " + last
    report = json.loads((out / f"{name}.json").read_text())
    faults, planned, unsure = (sum(t[key] for t in report["tried"] or []) for key in ("runs", "planned", "inconclusive"))
    learnt = len(report["scenarios"] or [])
    pace = share = "-"
    if faults:
        began = moment(log, r"injecting faults$")
        ended = moment(log, r"injecting faults: \d+ runs? in ")
        pace = "%.0f" % (60 * faults / max((ended or seconds) - began, 1))
        share = "%.0f %%" % (100 * unsure / faults)
    return (name, code, clock(seconds), clock(built), clock(first), f"{faults}/{planned}", pace, share,
            f"{learnt}/{learnt + len(report.get('notLearnt') or [])}", result(report))


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} OUTDIR [NAME...]")
    out = pathlib.Path(sys.argv[1])
    print(COLUMNS % ("operator", "code", "time", "build", "first", "faults", "a minute", "unsure", "learnt", "result"))
    for name in sys.argv[2:] or sorted(f.stem for f in out.glob("*.done")):
        print(COLUMNS % row(out, name))


main()

#!/usr/bin/env python3
"""A writer and a reader of Cyclone DDS in one process, by the Python binding of the real library.

    pair.py [--messages N] [--wait]

With --wait it says `ready PID` when everything is connected and begins when a line comes on stdin.
Last line: written=N taken=N.
"""
import argparse
import ctypes
import os
import sys
from dataclasses import dataclass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args()

    # Yama's ptrace_scope 1 lets only a parent attach: PR_SET_PTRACER, PR_SET_PTRACER_ANY.
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)

    from cyclonedds.core import Policy, Qos
    from cyclonedds.domain import DomainParticipant
    from cyclonedds.idl import IdlStruct
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic
    from cyclonedds.util import duration

    @dataclass
    class Greeting(IdlStruct, typename="Greeting"):
        text: str

    participant = DomainParticipant()
    topic = Topic(participant, "greetings", Greeting)
    qos = Qos(Policy.Reliability.Reliable(duration(seconds=10)), Policy.History.KeepAll)
    reader = DataReader(participant, topic, qos=qos)
    writer = DataWriter(participant, topic, qos=qos)
    print("ready", os.getpid(), flush=True)
    if options.wait:
        sys.stdin.readline()

    written = taken = 0
    for number in range(1, options.messages + 1):
        writer.write(Greeting(text=f"Hello World: {number}"))
        written += 1
        for sample in reader.take_iter(timeout=duration(seconds=10)):
            assert sample.text == f"Hello World: {number}", sample.text
            taken += 1
            break
    print(f"written={written} taken={taken}", flush=True)
    return 0 if taken == options.messages else 1


sys.exit(main())

"""
A stand-in for the public services that the thirteen jobs call: it answers in their
shapes, counts each call, and fails on command. Python's standard library only.

    python3 examples/buildrisk/standin --port 8420

world.py      the data, made from a seed: the same answer each time
dart.py …     one file per service: its answers, and how it says no
services.py   the table of services and their paths
control.py    what a test may ask of it: failures, limits, delays, another order
calls.py      who called what, and how often
server.py     HTTP
"""

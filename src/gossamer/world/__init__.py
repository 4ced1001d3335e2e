"""World: clock, files, random numbers, processes: the only package that reads time, disk and chance directly.

Takes    calls
Gives    times, bytes, numbers
Keeps    nothing
Imports  nothing of ours
Touches  everything
Never    knows what the bytes mean
"""

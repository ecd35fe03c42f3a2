"""python -m cutepilot: the program."""
from cutepilot import main

main()

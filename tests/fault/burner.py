"""Burns as much of the processor as somebody else did, at the same pace.

Run as ``burner.py <seconds of a slot>``. A line on its standard input is a JSON list: how many
seconds of a processor to take in each slot. It prints how many it took in all.
"""

import json
import os
import sys
import time


def main(slot: float) -> None:
    for line in sys.stdin:
        amounts = json.loads(line)
        began, before = time.monotonic(), time.process_time()
        child = os.fork()
        for number, amount in enumerate(amounts):
            time.sleep(max(0.0, began + number * slot - time.monotonic()))
            # What is more than one processor has, another process takes.
            _burn(min(amount, slot) if child else max(0.0, amount - slot))
        if not child:
            os._exit(0)
        os.wait()
        used = time.process_time() - before + os.times().children_user
        print(json.dumps(used), flush=True)


def _burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(500))


if __name__ == "__main__":
    main(float(sys.argv[1]))

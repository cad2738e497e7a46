r"""Burns the same amount of processor time as another process did, at the same pace.

Run as ``burner.py <seconds of a slot>``. Each line on its standard input is a JSON list: how many
seconds of processor time to take in each slot. It prints the total that it took.
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
            # A second process takes what exceeds one processor.
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

#!/usr/bin/env python3
"""Verifies deliveries with the published library `standardwebhooks`.

    verify_standard_webhooks.py VENV SECRET < deliveries.json

VENV is a folder where the library is installed on first use. Deliveries are a JSON list of objects
with `id`, `timestamp`, `signature` and `body`. Exits with 0 when the library accepts every one and
refuses it with another body, with 1 when it does not, with 75 when it cannot be installed.
"""

import fcntl
import json
import os
import subprocess
import sys

LIBRARY = "standardwebhooks==1.1.0"


def main() -> None:
    venv, secret = sys.argv[1:]
    python = os.path.join(venv, "bin", "python")
    if os.path.realpath(sys.prefix) != os.path.realpath(venv):
        install(venv, python)
        os.execv(python, [python, *sys.argv])
    verify(secret, json.load(sys.stdin))


def install(venv: str, python: str) -> None:
    os.makedirs(os.path.dirname(venv), exist_ok=True)
    # Tests run at the same time: one installs, the others wait for it.
    with open(venv + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if has_library(python):
            return
        for step in (
            [sys.executable, "-m", "venv", venv],
            [python, "-m", "pip", "install", "--quiet", LIBRARY],
        ):
            done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                print(done.stdout.strip())
                sys.exit(75)


def has_library(python: str) -> bool:
    if not os.path.exists(python):
        return False
    return subprocess.run([python, "-c", "import standardwebhooks"], capture_output=True).returncode == 0


def verify(secret: str, deliveries: list) -> None:
    from standardwebhooks import Webhook, WebhookVerificationError

    webhook = Webhook(secret)

    def accepts(body: str, headers: dict) -> bool:
        try:
            webhook.verify(body, headers)
        except WebhookVerificationError:
            return False
        except json.JSONDecodeError:
            # The library parses what it has verified, and not every body is JSON.
            return True
        return True

    for delivery in deliveries:
        headers = {f"webhook-{name}": delivery[name] for name in ("id", "timestamp", "signature")}
        if not accepts(delivery["body"], headers):
            sys.exit(f"refused: {headers}")
        if accepts(delivery["body"] + " ", headers):
            sys.exit(f"accepted with another body: {headers}")
    print(f"{len(deliveries)} verified")


if __name__ == "__main__":
    main()

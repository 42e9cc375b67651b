"""Creates runs with the published Python client as its users do, and prints their ids, one a line.

Usage: OZ_API_BASE_URL=http://127.0.0.1:4180/api/v1 WARP_API_KEY=… python repeats.py PROMPT COUNT
"""

import os
import sys

from oz_agent_sdk import OzAPI

client = OzAPI(api_key=os.environ["WARP_API_KEY"], base_url=os.environ["OZ_API_BASE_URL"])
for _ in range(int(sys.argv[2])):
    print(client.agent.run(prompt=sys.argv[1]).run_id)

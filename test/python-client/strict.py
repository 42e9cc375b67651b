"""The published client, made to notice each answer that is not as its types say."""

import httpx
from oz_agent_sdk import OzAPI, DefaultHttpxClient
from pydantic import TypeAdapter


class Strict:
    """A client whose last answer can be held against a type. `api` takes no second try unless a scenario asks for one."""

    def __init__(self, base_url: str, key: str) -> None:
        self.base_url = base_url
        self.key = key
        self.last: httpx.Response | None = None
        http = DefaultHttpxClient(event_hooks={"response": [self._keep]})
        self.api = OzAPI(
            api_key=key, base_url=base_url, http_client=http, max_retries=0, _strict_response_validation=True
        )

    def _keep(self, response: httpx.Response) -> None:
        if not response.is_redirect:
            self.last = response

    def check(self, kind: object) -> None:
        """Raises where the last answer lacks a member, or has one of another type: no number for a string, no null."""
        assert self.last is not None
        TypeAdapter(kind).validate_json(self.last.content, strict=True)

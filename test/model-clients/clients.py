"""Asks the model of the run with each Python client. The clients get no address and no key: they read their own variables."""

import json
import os
import sys

model = os.environ["RUNYARD_MODEL"]
question = [{"role": "user", "content": sys.stdin.read()}]


def anthropic_clients():
    from anthropic import Anthropic

    client = Anthropic(max_retries=0)
    yield "anthropic", client.messages.create(model=model, max_tokens=64, messages=question).content[0].text
    with client.messages.stream(model=model, max_tokens=64, messages=question) as stream:
        yield "anthropic stream", stream.get_final_text()
    yield "anthropic models", client.models.list().data[0].id
    # An address with the version, to which the client adds another one.
    versioned = Anthropic(base_url=os.environ["RUNYARD_MODEL_BASE_URL"], max_retries=0)
    yield "anthropic /v1/v1", versioned.messages.create(model=model, max_tokens=64, messages=question).content[0].text


def openai_clients():
    from openai import OpenAI

    client = OpenAI(max_retries=0)
    yield "openai chat", client.chat.completions.create(model=model, messages=question).choices[0].message.content
    yield "openai models", client.models.list().data[0].id
    if os.environ["RUNYARD_MODEL_PROTOCOL"] == "openai-responses":
        yield "openai responses", client.responses.create(model=model, input=question).output_text


def google_clients():
    from google import genai

    text = question[0]["content"]
    client = genai.Client()
    yield "google-genai", client.models.generate_content(model=model, contents=text).text
    pieces = client.models.generate_content_stream(model=model, contents=text)
    yield "google-genai stream", "".join(piece.text or "" for piece in pieces)
    stable = genai.Client(http_options={"api_version": "v1"})
    yield "google-genai v1", stable.models.generate_content(model=model, contents=text).text


def litellm_client(prefix):
    import litellm

    yield "litellm", litellm.completion(model=f"{prefix}/{model}", messages=question).choices[0].message.content


clients, prefix = {
    "anthropic": (anthropic_clients, "anthropic"),
    "openai-responses": (openai_clients, "openai"),
    "openai-compatible": (openai_clients, None),
    "google": (google_clients, "gemini"),
}[os.environ["RUNYARD_MODEL_PROTOCOL"]]
for name, answer in clients():
    print(json.dumps([name, answer]), flush=True)
if prefix:
    for name, answer in litellm_client(prefix):
        print(json.dumps([name, answer]), flush=True)

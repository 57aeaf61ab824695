"""Asks the agent questions whose answers are only in the demo knowledge base, and counts the answers that cite the right
id. usage: ask.py BASE_URL KEY QUESTIONS.json REQUIRED"""
import json
import sys
import time
import urllib.request

base, key, questions, required = sys.argv[1:]
right = 0
for position, item in enumerate(json.load(open(questions)), 1):
    request = urllib.request.Request(
        f"{base}/v1/responses",
        data=json.dumps({"model": "toolwright", "input": item["question"]}).encode(),
        headers={"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    started = time.monotonic()
    try:
        response = json.load(urllib.request.urlopen(request, timeout=1200))
    except urllib.error.HTTPError as error:
        sys.exit(f"{item['question']}: {error.code} {error.read().decode()}")
    parts = [part for output in response["output"] for part in output.get("content") or []]
    text = "".join(part.get("text", "") for part in parts)
    calls = [output["name"] for output in response["output"] if output.get("name")]
    cited = [id for id in item["ids"] if id in text]
    right += bool(cited)
    usage, seconds = response.get("usage") or {}, time.monotonic() - started
    print(f"{position}. {'ok  ' if cited else 'MISS'} {item['question']}  ({seconds:.0f} s, calls: {', '.join(calls) or 'none'}, "
          f"tokens: {usage.get('input_tokens')} in, {usage.get('output_tokens')} out)\n   {text.strip()}", flush=True)
print(f"{right} answers cite the right id; {required} are required")
sys.exit(right < int(required))

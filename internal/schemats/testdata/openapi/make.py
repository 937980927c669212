#!/usr/bin/env python3
"""Makes tools of OpenAPI documents, as generators of MCP servers do.

    make.py STYLE DOCUMENT KILOBYTES [SKIP] > TOOLS.json

DOCUMENT is JSON (or YAML, with PyYAML). The tools are the document's operations
in their order, from the SKIPth kilobyte on (0), until the list has KILOBYTES of
JSON. Every fourth run of operations is taken, so that several parts of the API
occur, each with neighbouring tools. Every $ref is written in place. STYLE:

    flat   parameters and the properties of the body side by side
    body   the body as one parameter; as zod writes it: open objects, and
           optional properties that may be null
    full   like flat, with the schema of the answer as outputSchema

The lists here come from documents inside public packages:

    flat  asana.json      test_specs/asana.yaml of the Go module github.com/pb33f/libopenapi v0.42.3
    flat  github.json     generated/api.github.com.json of the npm package @octokit/openapi 23.0.2
    body  docusign.json   test_specs/docusignv3.1.json of the Go module above
    full  stripe.json     test_specs/stripe.yaml of the Go module above
"""
import json
import re
import sys

MAX_DEPTH = 6
RUN = 6  # operations that stay together
KEEP = ("type", "description", "enum", "default", "format", "minimum", "maximum", "minLength", "maxLength", "pattern",
        "minItems", "maxItems", "uniqueItems", "required", "additionalProperties", "nullable")


def load(path):
    with open(path, encoding="utf-8") as f:
        if path.endswith(".json"):
            return json.load(f)
        import yaml

        class Loader(yaml.CSafeLoader):
            pass
        Loader.yaml_implicit_resolvers = {
            k: [r for r in v if r[0] != "tag:yaml.org,2002:timestamp"] for k, v in Loader.yaml_implicit_resolvers.items()}
        return yaml.load(f, Loader)


class Maker:
    def __init__(self, doc, style):
        self.doc, self.style = doc, style

    def target(self, node):
        seen = set()
        while isinstance(node, dict) and "$ref" in node and node["$ref"] not in seen:
            seen.add(node["$ref"])
            at = self.doc
            for part in node["$ref"].lstrip("#/").split("/"):
                at = at.get(part.replace("~1", "/").replace("~0", "~"), {})
            node = at
        return node if isinstance(node, dict) else {}

    def schema(self, node, depth=0, above=()):
        name = node.get("$ref")
        if name in above or depth > MAX_DEPTH:
            return {"type": "object"}
        above = above + (name,) if name else above
        node = self.target(node)
        out = {k: node[k] for k in KEEP if k in node and not (k == "additionalProperties" and isinstance(node[k], dict))}
        if isinstance(node.get("additionalProperties"), dict):
            out["additionalProperties"] = self.schema(node["additionalProperties"], depth + 1, above)
        if isinstance(node.get("items"), dict):
            out["items"] = self.schema(node["items"], depth + 1, above)
        for word in ("anyOf", "oneOf", "allOf"):
            if word in node:
                out[word] = [self.schema(x, depth + 1, above) for x in node[word]]
        if isinstance(node.get("properties"), dict):
            props = {k: self.schema(v, depth + 1, above) for k, v in node["properties"].items()
                     if isinstance(v, dict) and not v.get("readOnly")}
            if self.style == "body":
                need = node.get("required", [])
                props = {k: v if k in need else self.nullish(v) for k, v in props.items()}
            out["properties"] = props
            if "required" in out:
                out["required"] = [k for k in out["required"] if k in props]
        if self.style == "body" and (out.get("type") == "object" or "properties" in out):
            out.setdefault("additionalProperties", {})
        return out

    @staticmethod
    def nullish(s):
        if isinstance(s.get("type"), str) and s["type"] not in ("object", "array") and "enum" not in s:
            return {**s, "type": [s["type"], "null"]}
        text = s.pop("description", None)
        return {"anyOf": [s, {"type": "null"}], **({"description": text} if text else {})}

    def tool(self, verb, path, shared, op):
        props, required = {}, []
        for p in shared + op.get("parameters", []):
            p = self.target(p)
            if p.get("in") not in ("path", "query", "body"):
                continue
            s = self.schema(p.get("schema") or {k: v for k, v in p.items() if k in KEEP and k != "required"})
            if "description" in p:
                s = {**s, "description": p["description"]}
            props[p["name"]] = s
            if p.get("required"):
                required.append(p["name"])
        body = self.target(op.get("requestBody", {}))
        content = next(iter(body.get("content", {}).values()), {}).get("schema")
        if content is not None:
            s = self.schema(content)
            if self.style == "body" or "properties" not in s:
                props["body"] = s
                required.append("body")
            else:
                props.update(s["properties"])
                required += [k for k in s.get("required", []) if k not in required]
        name = op.get("operationId") or verb + path
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64]
        summary, text = op.get("summary", ""), op.get("description", "")
        tool = {"name": name, "description": (summary + "\n\n" + text if text and text != summary else summary).strip(),
                "inputSchema": {"type": "object", "properties": props, **({"required": required} if required else {})}}
        if self.style == "body":
            tool["inputSchema"]["additionalProperties"] = False
            tool["inputSchema"]["$schema"] = "http://json-schema.org/draft-07/schema#"
        if self.style == "full":
            answer = self.target(op.get("responses", {}).get("200", {})).get("content", {}).get("application/json", {}).get("schema")
            if answer is not None:
                s = self.schema(answer, MAX_DEPTH - 3)
                if s.get("type") == "object":
                    tool["outputSchema"] = s
        return tool

    def tools(self):
        for path, item in self.doc["paths"].items():
            item = self.target(item)
            for verb in ("get", "post", "put", "patch", "delete"):
                if verb in item:
                    yield self.tool(verb, path, item.get("parameters", []), item[verb])


def main():
    style, path, kilobytes, skip = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0
    out, size, left = [], 0, skip * 1000
    for i, tool in enumerate(Maker(load(path), style).tools()):
        length = len(json.dumps(tool, separators=(",", ":"), ensure_ascii=False))
        if i // RUN % 4 or length > 24_000:
            continue
        if left > 0:
            left -= length
            continue
        size += length
        if size > kilobytes * 1000:
            break
        out.append(tool)
    print(json.dumps({"tools": out}, separators=(",", ":"), ensure_ascii=False))


main()

import type { Tick, Value } from "./value.ts";
import { parseYaml } from "./yaml-parse.ts";
import { readQuickly } from "./yaml-quick.ts";
import { decodeYaml } from "./yaml-text.ts";
import { inOrder, yamlValue } from "./yaml-value.ts";

/** Reads a stream's first YAML document as the kubelet does; null for a stream without one. Throws SyntaxError. */
export function readYaml(
  bytes: Uint8Array,
  tick: Tick = () => {},
): { readonly value: Value; readonly furtherDocuments: boolean } {
  const text = decodeYaml(bytes);
  const simple = text.ends === null ? readQuickly(text.text, tick) : null;
  if (simple !== null) return { value: inOrder(simple), furtherDocuments: false };
  const document = parseYaml(text, tick);
  if (document === null) return { value: null, furtherDocuments: false };
  return { value: yamlValue(document.root, tick), furtherDocuments: document.more };
}

/** What names, labels, paths and addresses have to look like in Kubernetes (apimachinery, util/validation). */

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const underscored = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$/;
const word = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
/** White space to Go, which is not quite what it is to JavaScript. */
const space = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const padding = new RegExp(`^${space}|${space}$`);

/** A lower-case RFC 1123 label. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && label.test(text);
}

/** A lower-case RFC 1123 subdomain. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && subdomain.test(text);
}

/** A subdomain whose labels may hold underscores. */
export function isSearchDomain(text: string): boolean {
  return text.length <= 253 && underscored.test(text);
}

/** A label key, also called a qualified name: `name` or `example.com/name`. */
export function isLabelKey(text: string): boolean {
  const parts = text.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2 || (parts.length === 2 && !isDnsSubdomain(parts[0] ?? ""))) return false;
  return name.length <= 63 && word.test(name);
}

/** A label value, which may be empty. */
export function isLabelValue(text: string): boolean {
  return text.length <= 63 && (text === "" || word.test(text));
}

export function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}

/** An IANA service name. */
export function isPortName(text: string): boolean {
  return text.length <= 15 && /^[-a-z0-9]+$/.test(text) && /[a-z]/.test(text) && !/--|^-|-$/.test(text);
}

/** A user or group id. */
export function isUserId(id: number): boolean {
  return id >= 0 && id <= 0x7fff_ffff;
}

/** Whether a path has no `..` element. */
export function hasNoBacksteps(path: string): boolean {
  return !path.split("/").includes("..");
}

/** A relative path without `..` elements. */
export function isDescending(path: string): boolean {
  return !path.startsWith("/") && hasNoBacksteps(path);
}

/** A descending path that does not begin with two dots. */
export function isFreeDescending(path: string): boolean {
  return isDescending(path) && !path.startsWith("..");
}

/** Whether white space begins or ends a text. */
export function isPadded(text: string): boolean {
  return padding.test(text);
}

/** An IPv4 address without leading zeros, or an IPv6 address without a zone that does not stand for an IPv4 one. */
export function isAddress(text: string): boolean {
  if (isIpv4(text)) return true;
  const groups = ipv6Groups(text);
  return groups !== null && !(groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff);
}

function isIpv4(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255);
}

function ipv6Groups(text: string): number[] | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const read = (half: string, last: boolean): number[] | null => {
    if (half === "") return [];
    const groups: number[] = [];
    const parts = half.split(":");
    for (const [i, part] of parts.entries()) {
      if (last && i === parts.length - 1 && isIpv4(part)) {
        const [a = 0, b = 0, c = 0, d = 0] = part.split(".").map(Number);
        groups.push(a * 256 + b, c * 256 + d);
      } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
      else return null;
    }
    return groups;
  };
  const head = read(halves[0] ?? "", halves.length === 1);
  const tail = halves.length === 2 ? read(halves[1] ?? "", true) : [];
  if (head === null || tail === null) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  return [...head, ...Array.from({ length: missing }, () => 0), ...tail];
}

/** How many bytes a text takes in UTF-8. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

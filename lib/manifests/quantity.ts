/** A resource quantity, exact to the nano that Kubernetes rounds up to. */
export interface Quantity {
  /** Its value times 10^9. */
  readonly nano: bigint;
  /** As it was spelled; a canonical spelling shows in how Kubernetes prints it. */
  readonly text: string;
}

const giga = 1_000_000_000n;
/** Suffixes of quantities (apimachinery, resource/suffix.go): powers of ten and of two. */
const decimal: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const binary: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const most = (2n ** 63n - 1n) * giga;
/** Beyond this a value is larger than everything it is compared with; Go would still compute it. */
const largestExponent = 400;

/**
 * Reads a quantity such as `500m`, `1.5Gi` or `1e3`; null where Kubernetes refuses it. Digits may be missing altogether
 * (`k` is 0, as in Kubernetes) but before Pi and Ei, and an exponent keeps its low 32 bits only.
 */
export function parseQuantity(text: string): Quantity | null {
  const [, sign, whole, fraction = "", suffix = ""] = /^([-+]?)([0-9]*)(?:\.([0-9]*))?(.*)$/s.exec(text) ?? [];
  if (whole === undefined || text === "") return null;
  const power = binary[suffix];
  let exponent = 0;
  if (power === undefined) {
    const spelled = /^[eE]([-+]?[0-9]+)$/.exec(suffix)?.[1];
    const known = Object.hasOwn(decimal, suffix) ? decimal[suffix] : spelled === undefined ? null : lowBits(spelled);
    if (known === null || known === undefined) return null;
    exponent = Math.max(-largestExponent, Math.min(largestExponent, known));
  }
  const digits = whole + fraction;
  if (digits === "" && power !== undefined && power >= 50) return null;
  let value = BigInt(digits) * 2n ** BigInt(power ?? 0);
  const scale = 9 - fraction.length + exponent;
  if (scale >= 0) value *= 10n ** BigInt(scale);
  else {
    const divisor = 10n ** BigInt(-scale);
    value = (value + divisor - 1n) / divisor;
  }
  if (power !== undefined && value > most) value = most;
  return { nano: sign === "-" ? -value : value, text };
}

function lowBits(spelled: string): number | null {
  const exponent = BigInt(spelled.replace("+", ""));
  return BigInt.asIntN(64, exponent) === exponent ? Number(BigInt.asIntN(32, exponent)) : null;
}

/** A quantity rounded away from zero to thousandths, as every resource list is. */
export function roundToMilli({ nano, text }: Quantity): Quantity {
  const milli = 1_000_000n;
  const size = nano < 0n ? -nano : nano;
  const rounded = ((size + milli - 1n) / milli) * milli;
  return { nano: nano < 0n ? -rounded : rounded, text };
}

/** The whole number a quantity stands for, rounded away from zero. */
export function wholeValue({ nano }: Quantity): bigint {
  return nano > 0n ? (nano + giga - 1n) / giga : -((giga - 1n - nano) / giga);
}

/** Whether a quantity has no fraction. */
export function isWhole({ nano }: Quantity): boolean {
  return nano % giga === 0n;
}

/**
 * Whether Kubernetes would print a quantity as one of `forms`, each a 1 with a suffix. It prints the given spelling where
 * that looks canonical, so `+1` is not `1`, and computes one where it does not, so `1000m` is.
 */
export function isPrintedAs({ nano, text }: Quantity, forms: readonly string[]): boolean {
  const [, digits = "", fraction = "", suffix = ""] = /^[-+]?0*([0-9]*)(?:\.([0-9]*))?(.*)$/s.exec(text) ?? [];
  const power = binary[suffix];
  const exponential = power === undefined && !Object.hasOwn(decimal, suffix);
  let kept: boolean;
  if (power !== undefined) kept = fraction === "" && BigInt(digits) % 8n !== 0n;
  else {
    const exponent = exponential ? Number(suffix.slice(1)) : (decimal[suffix] ?? 0);
    const shifted = (digits === "" ? "0" : digits) + fraction;
    kept = (exponent - fraction.length) % 3 === 0 && !shifted.endsWith("000") && !shifted.startsWith("0");
  }
  if (kept) return forms.includes(text);
  return forms.some((form) => {
    const ending = form.slice(1);
    if (ending !== "" && (exponential || Object.hasOwn(binary, ending) !== (power !== undefined))) return false;
    return parseQuantity(form)?.nano === nano;
  });
}

// A reporter for `node --test`: one JSON line a finished test. Node's own JUnit writer drops the failure of a test that
// has subtests and failed after them.
export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    const error = data.details?.error;
    const cause = error?.cause ?? error;
    yield `${JSON.stringify({
      passed: type === "test:pass",
      name: data.name,
      file: data.file,
      nesting: data.nesting,
      suite: data.details?.type === "suite",
      skip: data.skip,
      todo: data.todo,
      onlySubtestsFailed: error?.failureType === "subtestsFailed",
      message: type === "test:fail" ? (cause?.stack ?? cause?.message ?? String(cause)) : undefined,
    })}\n`;
  }
}

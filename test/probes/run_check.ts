// Runs a check by words and prints its report: for tests that run it as another user.

import { runWords } from "./support.ts";

console.log(JSON.stringify(await runWords(process.argv.slice(2))));

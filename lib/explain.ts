export function explain(words: readonly string[]): string {
  return words.join();
}

/**
 * How well a text matches what somebody typed, or 0 if it does not. The letters must occur in their
 * order; those that begin a word or follow each other count more.
 */
export function rank(text: string, typed: string): number {
  const candidate = text.toLowerCase();
  const wanted = typed.toLowerCase().replaceAll(/\s+/g, '');
  if (wanted === '') return 1;
  let score = 0;
  let at = -1;
  for (const letter of wanted) {
    const next = candidate.indexOf(letter, at + 1);
    if (next < 0) return 0;
    const beginsWord = next === 0 || /[^a-z0-9]/.test(candidate[next - 1]!);
    score += 1 + (next === at + 1 ? 3 : 0) + (beginsWord ? 4 : 0);
    at = next;
  }
  return score + 1 / candidate.length;
}

/** Bright enough on any picture, with dark text on them. */
const COLORS = ['#7ab8ff', '#ffb454', '#7ee787', '#d2a8ff', '#5ce1e6', '#ff9ac6', '#f2e05c', '#ff9d8a'];

const MAX_LABELS = 1000;

/** The colors of labels: each new label gets the next one, so that the first eight differ. */
export class LabelColors {
  #colors = new Map<string, string>();

  of(label: string): string {
    let color = this.#colors.get(label);
    if (color === undefined) {
      color = COLORS[this.#colors.size % COLORS.length]!;
      if (this.#colors.size < MAX_LABELS) this.#colors.set(label, color);
    }
    return color;
  }
}

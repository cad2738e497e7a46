/** Where the rows of a list are, of which some are open and therefore higher. */

export interface OpenRow {
  readonly index: number;
  /** Pixels by which the row is higher than a closed one. */
  readonly extra: number;
}

export class RowLayout {
  readonly height: number;

  /** `open` is in the order of the rows. */
  constructor(
    readonly count: number,
    readonly rowHeight: number,
    readonly open: readonly OpenRow[],
  ) {
    this.height = count * rowHeight + open.reduce((sum, each) => sum + each.extra, 0);
  }

  /** The upper edge of a row. */
  top(index: number): number {
    let top = index * this.rowHeight;
    for (const each of this.open) {
      if (each.index >= index) break;
      top += each.extra;
    }
    return top;
  }

  /** The row at this distance from the upper edge of the list. */
  indexAt(y: number): number {
    let above = 0;
    for (const each of this.open) {
      const top = each.index * this.rowHeight + above;
      if (y < top) break;
      if (y < top + this.rowHeight + each.extra) return each.index;
      above += each.extra;
    }
    return Math.max(0, Math.min(this.count - 1, Math.floor((y - above) / this.rowHeight)));
  }
}

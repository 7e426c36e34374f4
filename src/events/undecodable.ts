/** Stands in place of a payload that was stored and cannot be read. The event is still delivered: nothing is skipped. */
export class Undecodable {
  readonly reason: string
  // Private, so that printing shows the reason and never a payload.
  readonly #raw: string

  constructor(reason: string, raw: string) {
    this.reason = reason
    this.#raw = raw.slice(0, LONGEST_RAW)
  }

  /** The beginning of the text that was stored: at most 65,536 characters. */
  get raw(): string {
    return this.#raw
  }
}

const LONGEST_RAW = 65_536

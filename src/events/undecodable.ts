/** Stands in place of a payload that was stored and cannot be read. The event is still delivered: nothing is skipped. */
export class Undecodable {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

/** What one rendering may cost, so that a template cannot hold up the process whatever the event contains. */
import { Refusal } from './template-error.ts'

export interface Budget {
  /** Holes, tags, filters and turns of loops; 100,000 unless told. */
  readonly steps?: number
  /** Bytes of UTF-8 that come out; 1 MB unless told. */
  readonly bytes?: number
  /** Items of one list that is looped over; 10,000 unless told. */
  readonly items?: number
}

export const DEFAULT_BUDGET: Required<Budget> = { steps: 100_000, bytes: 1_048_576, items: 10_000 }

/** Counts the cost of one rendering and collects its text. A tree has one meter for all of its templates. */
export class Meter {
  readonly budget: Required<Budget>
  private stepsLeft: number
  private bytesLeft: number
  private text = ''

  constructor(budget: Required<Budget>) {
    this.budget = budget
    this.stepsLeft = budget.steps
    this.bytesLeft = budget.bytes
  }

  spend(steps: number): void {
    this.stepsLeft -= steps
    if (this.stepsLeft < 0) {
      throw tooMuch(`more than ${this.budget.steps} steps are needed`, 'Loop over less, or nest fewer loops.')
    }
  }

  /** Looks at the length before anything touches the text: a long sum of texts costs nothing until it is read. */
  checkLength(text: string): void {
    if (text.length > this.bytesLeft) throw this.tooLong()
  }

  /** One step per 256 characters, since a filter reads all of them. */
  spendOn(value: unknown): void {
    if (typeof value === 'string') {
      this.checkLength(value)
      this.spend(1 + (value.length >> 8))
    } else {
      this.spend(1)
    }
  }

  checkItems(count: number): void {
    const { items } = this.budget
    if (count > items) throw tooMuch(`a list to loop over has more than ${items} items`, 'Send a part of it.')
  }

  add(text: string): void {
    this.checkLength(text)
    this.bytesLeft -= text.length
    this.text += text
  }

  /** The text since it was last taken. Characters were counted so far; now the bytes beyond one each are. */
  take(): string {
    const { text } = this
    this.text = ''
    this.bytesLeft -= Buffer.byteLength(text) - text.length
    if (this.bytesLeft < 0) throw this.tooLong()
    return text
  }

  private tooLong(): Refusal {
    return tooMuch(`the text would be longer than ${this.budget.bytes} bytes`, 'Send less, or an address of the rest.')
  }
}

function tooMuch(reason: string, advice: string): Refusal {
  return new Refusal(reason, `${advice} Trying again would end the same way.`)
}

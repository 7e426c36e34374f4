export interface Goal {
  readonly what: string
  readonly value: string
  readonly wanted: string
  readonly met: boolean
  readonly later?: true
}
export function atLeast(what: string, value: number, wanted: number): Goal
export function atMost(what: string, value: number, wanted: number, unit: string): Goal
export function later(goal: Goal): Goal
export function verdictOf(goal: Goal): 'ok' | 'MISS' | 'later'
export function anyMissed(results: readonly { readonly goals: readonly Goal[] }[]): boolean
export function didNotEnd(error: Error): Goal

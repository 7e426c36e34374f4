import type { Goal } from './goals.mjs'

export function inTurns<Contender, Value>(
  contenders: Readonly<Record<string, Contender>>,
  options: {
    readonly rounds: number
    readonly play: (contender: Contender, turn: { name: string; isWarmUp: boolean }) => Promise<Value>
  },
): Promise<Record<string, Value[]>>
export function pick<Value, Picked>(
  measured: Readonly<Record<string, readonly Value[]>>,
  choose: (value: Value) => Picked,
): Record<string, Picked[]>
export interface Comparison {
  readonly figures: readonly [string, string][]
  ratio(name: string, other: string): number
  middle(name: string): number
  /** `line` names what is compared, where a journey has several. */
  jitGoals(line?: string): Goal[]
}
export function compare(
  byName: Readonly<Record<string, readonly number[]>>,
  options: { readonly unit: string; readonly less?: boolean },
): Comparison
export function withSpread(values: readonly number[], unit: string): string

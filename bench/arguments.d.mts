export class UsageError extends Error {}
export const HELP: string
export interface BenchArguments {
  readonly help: false
  readonly cases: readonly string[]
  readonly journeys: readonly string[]
  readonly server: { readonly kind: 'embedded' | 'system' } | { readonly kind: 'given'; readonly url: string }
  readonly ms: number
  readonly rounds: number | undefined
  readonly quick: boolean
  readonly record: boolean
}
export function parseBenchArguments(
  argv: readonly string[],
  known: { readonly cases: readonly string[]; readonly journeys: readonly string[] },
): BenchArguments | { readonly help: true }

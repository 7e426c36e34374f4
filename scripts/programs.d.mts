export interface Program {
  readonly name: string
  readonly debian: string
}
export const programs: readonly Program[]
export function findProgram(name: string): string | undefined
export function howToGet(...names: string[]): string
export function isCI(env?: Readonly<Record<string, string | undefined>>): boolean

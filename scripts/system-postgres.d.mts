export const supportedMajors: readonly string[]
export const STOCK: Readonly<Record<string, string>>
export const hasOlderMajorsFromNpm: boolean
export function findSystemPostgres(): string | undefined
export function findOlderPostgres(major: number | string): string | undefined
export function howToGetPostgres(major: number | string): string

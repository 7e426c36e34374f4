export const STOCK: Readonly<Record<string, string>>
export function findSystemPostgres(): string | undefined

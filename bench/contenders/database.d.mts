export function toDatabase(url: string, database: string): string

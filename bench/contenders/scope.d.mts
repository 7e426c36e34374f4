export interface Scope {
  own<Opened extends { close(): Promise<void> }>(opening: Opened | Promise<Opened>): Promise<Opened>
  close(): Promise<void>
}
export function createScope(): Scope

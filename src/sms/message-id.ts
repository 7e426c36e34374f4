/**
 * Whether a text is the id that an SMS provider gave to a message. Providers differ: 34 letters and digits, a UUID, a number. The
 * id goes into an event id and an aggregate, so it stays short and plain.
 */
export function isMessageId(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._:~-]{0,127}$/.test(value)
}

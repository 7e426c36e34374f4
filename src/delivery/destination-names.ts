/**
 * What people call a destination: its name, or an origin. An origin stands for every destination there, whatever type of
 * action goes to it: `https://erp.example.com` for `webhook https://erp.example.com`. Pure.
 */
import { AftercommitError } from '../errors.ts'
import { closest } from '../events/index.ts'

/** Those that are meant. Throws where nothing known is. */
export function destinationsMeant(given: string, known: readonly string[]): string[] {
  const origin = toOrigin(given)
  const meant = known.filter((name) => name === given || whereOf(name) === origin)
  if (meant.length > 0) return meant.sort()
  throw new AftercommitError(
    'UNKNOWN_DESTINATION',
    `Nothing in this database goes to ${JSON.stringify(given)}, so nothing is meant by it.${nearest(given, known)} ` +
      'See: aftercommit deliveries destinations',
  )
}

/** Without a path, as browsers write it; undefined when the text is something else. */
export function toOrigin(text: string): string | undefined {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s@]+\/?$/i.test(text) || !URL.canParse(text)) return undefined
  const { origin } = new URL(text)
  // Only the web has origins; for others the address without its end is as good.
  return origin === 'null' ? text.replace(/\/$/, '') : origin
}

/** ` Did you mean "webhook https://erp.example.com"?`, or nothing. */
function nearest(given: string, known: readonly string[]): string {
  const parts = known.find((name) => whereOf(name) === given || name.startsWith(`${given} `))
  const address = URL.canParse(given) ? new URL(given).origin : undefined
  const near =
    parts ?? known.find((name) => whereOf(name) === address) ?? closest(given, [...known, ...known.map(whereOf)])
  return near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`
}

/** A destination is a type of action and where it goes, or one word of a workflow. */
function whereOf(destination: string): string {
  return destination.slice(destination.indexOf(' ') + 1)
}

/**
 * E-mail addresses, read strictly. Mail software disagrees on comments, groups and quoted local parts, and that is how a
 * mail ends up with somebody else; such addresses are refused. One text is one address, never a list.
 */
import { domainToASCII } from 'node:url'
import type { Mailbox } from '../action.ts'

/** `ada@example.com` or `Ada <ada@example.com>`; undefined for anything else. */
export function parseMailbox(text: string): Mailbox | undefined {
  const trimmed = text.trim()
  if (trimmed.length > 500 || /[\u0000-\u001f\u007f]|\p{Surrogate}/u.test(trimmed)) return undefined
  const named = NAMED.exec(trimmed)
  const address = toAddress(named === null ? trimmed : (named[3] ?? ''))
  return address === undefined ? undefined : { name: (named?.[1] ?? named?.[2] ?? '').trim(), address }
}

const NAMED = /^(?:"([^"\\<>]*)"|([^"\\<>,;:@()[\]]*))\s*<([^<>\s]+)>$/
const LOCAL = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const DOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i

function toAddress(text: string): string | undefined {
  const at = text.lastIndexOf('@')
  const local = text.slice(0, at)
  const written = text.slice(at + 1)
  if (at < 1 || local.length > 64 || !LOCAL.test(local) || !/^[^\s!-,/:-@[-`{-~]+$/.test(written)) return undefined
  const domain = /^[\u0000-\u007f]*$/.test(written) ? written : domainToASCII(written)
  return DOMAIN.test(domain) ? `${local}@${domain}` : undefined
}

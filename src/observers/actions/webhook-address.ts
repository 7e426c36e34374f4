/** The address of a webhook: its origin is fixed when the configuration is loaded, its path and query may be templates. */
import type { Scope } from '../../conditions/index.ts'
import type { TemplateCompiler } from '../action.ts'
import { judgeUrl, type NetworkRules, type Target, toTarget } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { maskUrl } from './record.ts'
import { constantText, unusable } from './rendering.ts'

export interface Address {
  readonly origin: string
  /** `masked` is what may be kept of it. Throws OB003 when the event makes an address of it that is not sent to. */
  at(scope: Scope): Place
}

export interface Place extends Target {
  readonly masked: string
}

export function prepareAddress(source: string, templates: TemplateCompiler, rules: NetworkRules): Address {
  const template = templates.text(source, 'url', 'url')
  const constant = constantText(template)
  const fixed = constant ?? source.slice(0, templates.firstHoleOfUrl(source))
  const refusal = judgeUrl(fixed, rules)
  if (refusal !== undefined) {
    throw new ObserverError(
      'OB012',
      `The address is refused, because ${refusal}. ` +
        'Give a public http or https address, or add a private one to [network] allow.',
    )
  }
  const { origin } = new URL(fixed)
  if (constant !== undefined) {
    const always = toPlace(new URL(constant))
    return { origin, at: () => always }
  }
  const what = `The webhook to ${origin}`
  return {
    origin,
    at(scope) {
      const text = template.render(scope)
      const problem = judgeUrl(text, rules)
      if (problem !== undefined) throw unusable(what, `its address cannot be used, because ${problem}`)
      const url = new URL(text)
      if (url.origin !== origin) throw unusable(what, 'its template changed the host')
      return toPlace(url)
    },
  }
}

function toPlace(url: URL): Place {
  return { ...toTarget(url), masked: maskUrl(url) }
}

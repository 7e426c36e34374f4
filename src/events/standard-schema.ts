/**
 * The part of Standard Schema (version 1) that is used here. Zod, Valibot, ArkType and others implement it, so a
 * payload may be described with any of them and none is a dependency.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export type SchemaInput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['input']
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output']

/** Some libraries make their schemas objects, others functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<StandardSchema>)['~standard']
  return typeof standard === 'object' && standard?.version === 1 && typeof standard.validate === 'function'
}

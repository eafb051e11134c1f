/** What is reported when a Secret or ConfigMap, or one of its keys, does not exist. `object` is its kind and name. */

export const missingObject = (object: string, user: string): string => `there is no ${object}, which ${user} needs`;

export const missingKey = (object: string, { key, user }: { readonly key: string; readonly user: string }): string =>
  `the ${object} has no key ${key}, which ${user} needs`;

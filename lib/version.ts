// Baked in by the build; from a source tree the version alone is known.
declare const __KP_VERSION__: string;
declare const __KP_COMMIT__: string;
declare const __KP_DATE__: string;

/** The version of package.json. */
export const version: string = typeof __KP_VERSION__ === "string" ? __KP_VERSION__ : "0.1.0";
/** The commit the binary was built from, short; "source" for a source tree. */
export const commit: string = typeof __KP_COMMIT__ === "string" ? __KP_COMMIT__ : "source";
/** The date of that commit, RFC 3339; empty for a source tree. */
export const date: string = typeof __KP_DATE__ === "string" ? __KP_DATE__ : "";

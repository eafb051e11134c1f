// Filled by the package's own modules.

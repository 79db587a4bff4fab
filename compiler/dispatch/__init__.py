"""From a Python call to a launch: specialisation, arguments, loading, launching."""
